package bucket

import (
	"crypto/md5"
	"hash"
	"hash/crc32"
	"io"
)

// SumOf reads r to its end.
func SumOf(r io.Reader) (Sum, error) {
	s := newSummer()
	if _, err := io.Copy(s, r); err != nil {
		return Sum{}, err
	}
	return s.sum(), nil
}

type summer struct {
	size int64
	crc  hash.Hash32
	md5  hash.Hash
}

func newSummer() *summer { return &summer{crc: crc32.New(castagnoli), md5: md5.New()} }

func (s *summer) Write(p []byte) (int, error) {
	s.size += int64(len(p))
	s.crc.Write(p)
	s.md5.Write(p)
	return len(p), nil
}

func (s *summer) sum() Sum {
	return Sum{Size: s.size, CRC32C: s.crc.Sum32(), MD5: [16]byte(s.md5.Sum(nil))}
}
