// Package deploy has the tests of the folder deploy: alarms and board of Prometheus and Grafana,
// and the chart of Kubernetes.
package deploy
