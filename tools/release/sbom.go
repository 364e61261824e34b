package main

import (
	"bytes"
	"debug/buildinfo"
	"fmt"
	"os"
	"path/filepath"

	"github.com/CycloneDX/cyclonedx-go"
)

// bills writes for each program of each platform which modules it contains, as the toolchain
// recorded them in the program.
func (r *release) bills() error {
	folder := filepath.Join(r.out, "dist")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for _, p := range r.platforms {
		for _, program := range programs {
			info, err := buildinfo.ReadFile(filepath.Join(r.built(p), p.program(program.name)))
			if err != nil {
				return err
			}
			var text bytes.Buffer
			encoder := cyclonedx.NewBOMEncoder(&text, cyclonedx.BOMFileFormatJSON).SetPretty(true)
			if err := encoder.Encode(bill(info, program.name)); err != nil {
				return err
			}
			name := fmt.Sprintf("%s-%s-%s-%s.cdx.json", program.name, r.version, p.os, p.arch)
			if err := os.WriteFile(filepath.Join(folder, name), text.Bytes(), 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

// bill returns the bill of a program: its modules by their package URL, and the checksums of
// go.sum.
func bill(info *buildinfo.BuildInfo, name string) *cyclonedx.BOM {
	b := cyclonedx.NewBOM()
	program := component(cyclonedx.ComponentTypeApplication, info.Main.Path, info.Main.Version)
	program.Name = name
	b.Metadata = &cyclonedx.Metadata{Component: &program}
	components := []cyclonedx.Component{
		component(cyclonedx.ComponentTypeLibrary, "std", info.GoVersion)}
	for _, m := range info.Deps {
		c := component(cyclonedx.ComponentTypeLibrary, m.Path, m.Version)
		c.Properties = &[]cyclonedx.Property{{Name: "go.sum", Value: m.Sum}}
		components = append(components, c)
	}
	b.Components = &components
	return b
}

func component(kind cyclonedx.ComponentType, path, version string) cyclonedx.Component {
	url := "pkg:golang/" + path + "@" + version
	return cyclonedx.Component{Type: kind, Name: path, Version: version, BOMRef: url, PackageURL: url}
}
