// The lines of Kubernetes' own go.mod that matter, of an invented version.

module k8s.io/kubernetes

go 1.40.0

godebug default=go1.40

require (
	github.com/onsi/ginkgo/v2 v2.30.0
	go.etcd.io/etcd/client/v3 v3.7.1
	k8s.io/api v0.0.0
	k8s.io/apimachinery v0.0.0
	k8s.io/klog/v2 v2.140.0
)

require (
	example.com/other v0.0.0 // indirect
	k8s.io/kube-proxy v0.0.0
)

replace k8s.io/api => ./staging/src/k8s.io/api
