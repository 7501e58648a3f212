//go:build !unix

package result

const nonBlocking = 0
