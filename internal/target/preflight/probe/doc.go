// Package probe finds out by pods what the API of a cluster cannot tell: whether
// nodes pull the test images, whether cluster DNS answers, whether pods reach
// the internet, whether HostProcess containers and pods of a runtime class
// start, and whether the network enforces NetworkPolicy.
//
// The pods run on one real node of each Windows build and on one Linux worker:
// nothing is found out on simulated nodes. They are made in a namespace of their
// own, which goes when the probes have ended, also when they were interrupted.
// What a killed process left is removed by the next one; until then the pods end
// by themselves (activeDeadlineSeconds).
//
// What cannot be found out is [Unknown]. No result says that a cluster lacks a
// feature: a probe that fails shows something broken.
//
// All that runs is agnhost and pause, the images that KEP-2578 allows.
// agnhost's "connect" says with fixed words what went wrong
// (https://github.com/kubernetes/kubernetes/tree/v1.36.3/test/images/agnhost#connect).
package probe
