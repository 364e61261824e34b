package deploy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/template"
	"time"

	"github.com/Masterminds/sprig/v3"
	"github.com/VictoriaMetrics/metricsql"
	"go.yaml.in/yaml/v3"
)

const folder = "../../deploy/"

func read(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.FromSlash(name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Alarms are rules of Prometheus: no field that it does not know, and expressions that parse.
func TestAlerts(t *testing.T) {
	var file struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert, Expr, For    string
				Labels, Annotations map[string]string
			}
		}
	}
	d := yaml.NewDecoder(bytes.NewReader(read(t, folder+"alerts.yaml")))
	d.KnownFields(true)
	if err := d.Decode(&file); err != nil {
		t.Fatal(err)
	}
	rules := 0
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			rules++
			if _, err := metricsql.Parse(r.Expr); err != nil {
				t.Errorf("%s: %v", r.Alert, err)
			}
			if _, err := time.ParseDuration(r.For); err != nil && r.For != "" {
				t.Errorf("%s: %v", r.Alert, err)
			}
			anchor := "docs/service-mend.md#" + strings.ToLower(r.Alert)
			if r.Annotations["runbook"] != anchor || r.Annotations["summary"] == "" ||
				r.Labels["severity"] == "" {
				t.Errorf("%s has %v and %v", r.Alert, r.Labels, r.Annotations)
			}
		}
	}
	if rules < 10 {
		t.Errorf("%d rules", rules)
	}
}

// The board is JSON whose panels have places of their own and expressions that parse.
func TestBoard(t *testing.T) {
	type place struct{ X, Y, W, H int }
	var board struct {
		Panels []struct {
			ID      int
			Title   string
			GridPos place
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(read(t, folder+"board.json"), &board); err != nil {
		t.Fatal(err)
	}
	taken := map[[2]int]string{}
	for _, p := range board.Panels {
		if len(p.Targets) == 0 || p.Title == "" || p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("panel %d: %+v", p.ID, p)
		}
		for _, target := range p.Targets {
			if _, err := metricsql.Parse(target.Expr); err != nil {
				t.Errorf("%s: %v", p.Title, err)
			}
		}
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				at := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				if taken[at] != "" {
					t.Fatalf("%s lies over %s", p.Title, taken[at])
				}
				taken[at] = p.Title
			}
		}
	}
	if len(board.Panels) < 10 {
		t.Errorf("%d panels", len(board.Panels))
	}
}

type object = map[string]any

// render renders the chart, by the library that Helm renders by and the four functions that Helm
// adds to it, with changes to its values.
func render(t *testing.T, change func(values object)) (objects map[string]object, err error) {
	t.Helper()
	var values object
	if err := yaml.Unmarshal(read(t, folder+"chart/values.yaml"), &values); err != nil {
		t.Fatal(err)
	}
	change(values)
	all := template.New("").Option("missingkey=error")
	functions := sprig.TxtFuncMap()
	maps.Copy(functions, template.FuncMap{
		"toYaml": func(v any) (string, error) {
			b, err := yaml.Marshal(v)
			return strings.TrimSuffix(string(b), "\n"), err
		},
		"include": func(name string, data any) (string, error) {
			var b strings.Builder
			err := all.ExecuteTemplate(&b, name, data)
			return b.String(), err
		},
		"required": func(why string, v any) (any, error) {
			if v == nil || v == "" {
				return nil, errors.New(why)
			}
			return v, nil
		},
	})
	files, err := filepath.Glob(filepath.FromSlash(folder + "chart/templates/*"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := all.Funcs(functions).ParseFiles(files...); err != nil {
		t.Fatal(err)
	}
	objects = make(map[string]object)
	for _, file := range files {
		var b bytes.Buffer
		err := all.ExecuteTemplate(&b, filepath.Base(file), object{
			"Values":  values,
			"Release": object{"Name": "sums", "Namespace": "health"},
		})
		if err != nil {
			return nil, err
		}
		for d := yaml.NewDecoder(&b); ; {
			var o object
			if err := d.Decode(&o); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			if o == nil {
				continue
			}
			name := fmt.Sprint(o["kind"], " ", at(o, "metadata", "name"))
			if objects[name] != nil || o["apiVersion"] == nil {
				t.Errorf("%s: %s", file, name)
			}
			objects[name] = o
		}
	}
	return objects, nil
}

// at returns the value in an object under names, one in another.
func at(o any, names ...string) any {
	for _, name := range names {
		m, _ := o.(object)
		o = m[name]
	}
	return o
}

// list is at of a list of objects.
func list(o any, names ...string) (out []object) {
	all, _ := at(o, names...).([]any)
	for _, one := range all {
		m, _ := one.(object)
		out = append(out, m)
	}
	return out
}

// The chart renders to the objects of three nodes that fit each other.
func TestChart(t *testing.T) {
	var chart object
	if err := yaml.Unmarshal(read(t, folder+"chart/Chart.yaml"), &chart); err != nil ||
		chart["apiVersion"] != "v2" || chart["name"] == nil || chart["version"] == nil {
		t.Fatal(err, chart)
	}
	objects, err := render(t, func(v object) {
		v["image"], v["operators"] = "example.org/hushsum:1", "operate ann 00\n"
		v["page"] = object{"listen": "0.0.0.0:8080", "from": object{"app": "prometheus"}}
	})
	if err != nil {
		t.Fatal(err)
	}
	names := slices.Sorted(maps.Keys(objects))
	if want := []string{"ConfigMap sums-operators", "NetworkPolicy sums", "PodDisruptionBudget sums",
		"Service sums", "Service sums-nodes", "StatefulSet sums"}; !slices.Equal(names, want) {
		t.Fatalf("%v", names)
	}
	set := objects["StatefulSet sums"]
	pod := at(set, "spec", "template", "spec")
	if at(set, "spec", "replicas") != 3 || at(set, "spec", "serviceName") != "sums-nodes" ||
		len(list(set, "spec", "volumeClaimTemplates")) != 1 {
		t.Errorf("%v", set["spec"])
	}
	labels := at(set, "spec", "template", "metadata", "labels")
	for _, selector := range []any{at(set, "spec", "selector", "matchLabels"),
		at(objects["Service sums"], "spec", "selector"),
		at(objects["Service sums-nodes"], "spec", "selector"),
		at(objects["NetworkPolicy sums"], "spec", "podSelector", "matchLabels"),
		at(objects["PodDisruptionBudget sums"], "spec", "selector", "matchLabels")} {
		if fmt.Sprint(selector) != fmt.Sprint(labels) {
			t.Errorf("%v does not select %v", selector, labels)
		}
	}
	container := list(pod, "containers")[0]
	checkArguments(t, container)
	checkVolumes(t, pod, container)
	ports := []string{}
	for _, p := range list(container, "ports") {
		ports = append(ports, fmt.Sprint(p["name"], " ", p["containerPort"]))
	}
	if want := []string{"door 8443", "routes 6222", "page 8080"}; !slices.Equal(ports, want) {
		t.Errorf("ports %v", ports)
	}
	for _, probe := range []string{"startupProbe", "livenessProbe", "readinessProbe"} {
		get := at(container, probe, "httpGet")
		if at(get, "port") != "door" || at(get, "scheme") != "HTTPS" {
			t.Errorf("%s: %v", probe, get)
		}
	}
}

// checkArguments compares the arguments with the flags that the server has, and a node's own
// address with that by which others know it.
func checkArguments(t *testing.T, container object) {
	t.Helper()
	source := read(t, "../../service/cmd/hushsumd/serve.go")
	flags := map[string]bool{}
	for _, f := range regexp.MustCompile(`f\.\w*Var\(&[\w.]+, "([a-z-]+)"`).
		FindAllStringSubmatch(string(source), -1) {
		flags[f[1]] = true
	}
	values := map[string]string{}
	all, _ := container["args"].([]any)
	for i, a := range all {
		name, value, _ := strings.Cut(strings.TrimPrefix(fmt.Sprint(a), "--"), "=")
		if i == 0 && name == "serve" {
			continue
		}
		if values[name] = value; !flags[name] || value == "" {
			t.Errorf("hushsumd serve does not take %v", a)
		}
	}
	var own []string
	for i := range 3 {
		own = append(own, strings.ReplaceAll(values["cluster"], "$(NODE)", fmt.Sprint("sums-", i)))
	}
	if values["peers"] != strings.Join(own, ",") {
		t.Errorf("peers %s, of nodes at %v", values["peers"], own)
	}
}

// checkVolumes compares what is mounted with what there is. Secrets are readable by the group of
// the pod's user at most.
func checkVolumes(t *testing.T, pod any, container object) {
	t.Helper()
	volumes := map[any]bool{"data": true}
	for _, v := range list(pod, "volumes") {
		volumes[v["name"]] = true
		if secret, is := v["secret"]; is && at(secret, "defaultMode") != 0o440 {
			t.Errorf("%v", v)
		}
	}
	mounts := list(container, "volumeMounts")
	for _, m := range mounts {
		if !volumes[m["name"]] {
			t.Errorf("there is no volume %v", m["name"])
		}
	}
	if len(mounts) != len(volumes) {
		t.Errorf("%d volumes, %d mounts", len(volumes), len(mounts))
	}
}

// By default the page is on loopback, and what would not work is refused.
func TestChartValues(t *testing.T) {
	objects, err := render(t, func(v object) { v["image"] = "x" })
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprint(objects)
	if !strings.Contains(text, "--admin=127.0.0.1:8080") || strings.Contains(text, "port:8080") ||
		objects["ConfigMap sums-operators"] != nil {
		t.Errorf("%s", text)
	}
	for why, change := range map[string]func(object){
		"no image":   func(object) {},
		"two nodes":  func(v object) { v["image"], v["nodes"] = "x", 2 },
		"four nodes": func(v object) { v["image"], v["nodes"] = "x", 4 },
	} {
		if _, err := render(t, change); err == nil {
			t.Errorf("%s", why)
		}
	}
}
