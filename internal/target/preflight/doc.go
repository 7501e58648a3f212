// Package preflight answers, before a run: can this cluster be tested, and what
// is missing?
//
// [Gather] reads from the API, and makes nothing there but access reviews;
// [Check] turns what was read into findings, without touching anything. What
// could not be read is unknown, with the error, and never counts as absent. The
// absence of a feature is a fact of the API or a declaration of the user, as
// package verdict wants it.
//
// Sources: the version skew policy
// (https://kubernetes.io/releases/version-skew-policy/), the Windows releases
// that Kubernetes documents
// (https://kubernetes.io/docs/concepts/windows/intro/#windows-os-version-support),
// and KEP-2578.
package preflight
