package cli

import (
	"fmt"
	"runtime/debug"
)

// Version returns what was built, as the toolchain recorded it: the name and the number, then any
// further details after a comma.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "hushsum (built without version information)"
	}
	return describe(info)
}

func describe(info *debug.BuildInfo) string {
	setting := make(map[string]string)
	for _, s := range info.Settings {
		setting[s.Key] = s.Value
	}
	number := info.Main.Version
	if number == "" {
		number = "(devel)"
	}
	text := fmt.Sprintf("hushsum %s", number)
	if revision := setting["vcs.revision"]; len(revision) >= 12 {
		text += ", revision " + revision[:12]
		if setting["vcs.modified"] == "true" {
			text += " with changes"
		}
	}
	text += ", " + info.GoVersion
	if setting["GOOS"] != "" {
		text += fmt.Sprintf(" %s/%s", setting["GOOS"], setting["GOARCH"])
	}
	return text
}
