//go:build !unix

package testgrid_test

import "testing"

func makePipe(*testing.T, string) {}
