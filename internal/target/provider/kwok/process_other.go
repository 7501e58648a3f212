//go:build !unix

package kwok

import "errors"

var errUnsupported = errors.New("simulated clusters need Linux or macOS, as kube-apiserver does: use WSL")

func processes() ([]process, error) { return nil, errUnsupported }

func kill(int) error { return errUnsupported }
