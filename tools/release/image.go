package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// imageUser is the user that the server runs as in an image, a number without a name.
const imageUser = 65532

// imageConfig says how an image runs (OCI Image Configuration), like deploy/Dockerfile.
type imageConfig struct {
	User         string
	ExposedPorts map[string]struct{}
	Env          []string
	Entrypoint   []string
	Cmd          []string
	Volumes      map[string]struct{}
}

var serverConfig = imageConfig{
	User:         fmt.Sprint(imageUser),
	ExposedPorts: map[string]struct{}{"8443/tcp": {}},
	Env:          []string{"TMPDIR=/data"},
	Entrypoint:   []string{"/hushsumd"},
	Cmd:          []string{"serve", "--folder", "/data", "--listen", "0.0.0.0:8443"},
	Volumes:      map[string]struct{}{"/data": {}},
}

// blob is a file of an image, which others name by its digest.
type blob struct {
	content []byte
	digest  string // sha256:…
}

func newBlob(content []byte) blob {
	return blob{content, fmt.Sprintf("sha256:%x", sha256.Sum256(content))}
}

func (b blob) path() string { return "blobs/" + strings.Replace(b.digest, ":", "/", 1) }

// describes returns the description by which another file names a blob.
func (b blob) describes(kind string) map[string]any {
	return map[string]any{"mediaType": kind, "digest": b.digest, "size": len(b.content)}
}

// images writes the server's image for each processor of Linux.
func (r *release) images() error {
	for _, p := range r.platforms {
		if p.os != "linux" {
			continue
		}
		entries, err := r.image(p)
		if err != nil {
			return err
		}
		name := fmt.Sprintf("hushsumd-%s-image-%s-%s.tar", r.version, p.os, p.arch)
		if err := r.write(name, entries, r.packed); err != nil {
			return err
		}
		fmt.Println(name)
	}
	return nil
}

// image returns the files of an image with hushsumd, the program that it starts to read a party's
// rows, and a folder for its data: an OCI layout (OCI Image Layout 1.0), and the manifest.json that
// docker load needs.
func (r *release) image(p platform) ([]entry, error) {
	var layer, compressed bytes.Buffer
	files := []entry{{name: "data/", mode: 0o700, owner: imageUser}}
	for _, name := range []string{"hushsum-rows", "hushsumd"} {
		program, err := os.ReadFile(filepath.Join(r.built(p), name))
		if err != nil {
			return nil, err
		}
		files = append(files, entry{name: name, content: program, mode: 0o755, owner: imageUser})
	}
	if err := r.packed(&layer, files); err != nil {
		return nil, err
	}
	w := gzip.NewWriter(&compressed)
	if _, err := w.Write(layer.Bytes()); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	number := strings.TrimPrefix(r.version, "v")
	tag := "hushsum:" + number
	packedLayer, diff := newBlob(compressed.Bytes()), newBlob(layer.Bytes())
	config, err := json.Marshal(map[string]any{
		"created": r.time.Format(time.RFC3339), "architecture": p.arch, "os": p.os,
		"config": serverConfig,
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{diff.digest}},
	})
	if err != nil {
		return nil, err
	}
	settings := newBlob(config)
	manifest, err := json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": ociManifest,
		"config": settings.describes("application/vnd.oci.image.config.v1+json"),
		"layers": []any{packedLayer.describes("application/vnd.oci.image.layer.v1.tar+gzip")},
	})
	if err != nil {
		return nil, err
	}
	whole := newBlob(manifest)
	described := whole.describes(ociManifest)
	described["platform"] = map[string]string{"os": p.os, "architecture": p.arch}
	described["annotations"] = map[string]string{
		"org.opencontainers.image.ref.name": number, "io.containerd.image.name": tag,
	}
	index, err := json.Marshal(map[string]any{"schemaVersion": 2,
		"mediaType": "application/vnd.oci.image.index.v1+json", "manifests": []any{described}})
	if err != nil {
		return nil, err
	}
	known, err := json.Marshal([]any{map[string]any{"Config": settings.path(),
		"RepoTags": []string{tag}, "Layers": []string{packedLayer.path()}}})
	if err != nil {
		return nil, err
	}
	entries := []entry{
		{name: "oci-layout", content: []byte(`{"imageLayoutVersion":"1.0.0"}`), mode: 0o644},
		{name: "index.json", content: index, mode: 0o644},
		{name: "manifest.json", content: known, mode: 0o644},
	}
	for _, b := range []blob{whole, settings, packedLayer} {
		entries = append(entries, entry{name: b.path(), content: b.content, mode: 0o644})
	}
	return entries, nil
}

const ociManifest = "application/vnd.oci.image.manifest.v1+json"
