{{- define "hushsum.name" -}}{{ .Release.Name | trunc 40 | trimSuffix "-" }}{{- end }}

{{- define "hushsum.labels" -}}
app.kubernetes.io/name: hushsum
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "hushsum.nodes" -}}{{ include "hushsum.name" . }}-nodes.{{ .Release.Namespace }}.svc{{- end }}

{{- define "hushsum.peers" -}}
{{- $name := include "hushsum.name" . -}}
{{- $domain := include "hushsum.nodes" . -}}
{{- range $i := until (int .Values.nodes) }}{{ if $i }},{{ end }}{{ $name }}-{{ $i }}.{{ $domain }}:6222{{ end }}
{{- end }}
