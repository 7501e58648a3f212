module op-readiness.invalid/build

go 1.40.0

godebug default=go1.40

require k8s.io/kubernetes v1.44.2

replace k8s.io/api => k8s.io/api v0.44.2

replace k8s.io/apimachinery => k8s.io/apimachinery v0.44.2

replace k8s.io/kube-proxy => k8s.io/kube-proxy v0.44.2
