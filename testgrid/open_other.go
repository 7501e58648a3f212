//go:build !unix

package testgrid

const nonBlocking = 0
