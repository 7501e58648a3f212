// Package lies holds what op-readiness must not believe: an e2e.test that lies,
// and results folders that were forged. It is written from outside, as somebody
// would who wants a false "ready": it drives the command line, and looks at exit
// codes and at what was written.
//
// A case is named after what must not be believed. See docs/trust.md.
package lies
