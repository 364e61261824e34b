// Package deploy tests the folder deploy: the alarms of Prometheus, the board of Grafana, and the
// chart for Kubernetes.
package deploy
