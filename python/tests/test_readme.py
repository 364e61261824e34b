"""The job that README.md shows runs as it stands, and prints what the page says."""

import re
from pathlib import Path

README = Path(__file__).resolve().parent.parent / "README.md"


def test_the_job_of_the_page(tmp_path, monkeypatch, capsys) -> None:
    job, code, output = re.search(
        r"```toml\n(.*?)```.*?```python\n(.*?)```.*?```\n(.*?)```", README.read_text(),
        re.DOTALL).groups()
    monkeypatch.chdir(tmp_path)
    Path("study.toml").write_text(job)
    exec(code, {})

    def settled(text: str) -> str:  # noise is new in every run
        return re.sub(r"score \S+,", "score", text)

    assert settled(capsys.readouterr().out) == settled(output)
