"""Reads a job's file, whose path standard input has as JSON, and prints its digest and words."""

import json
import sys

import hushsum

job = hushsum.Job.load(json.load(sys.stdin))
print(json.dumps({"digest": job.digest(), "explain": job.explain()}))
