package kwok

// TakePortsFirst makes p try, the first time, to let etcd listen on taken.
func (p *Provider) TakePortsFirst(taken int) {
	first := true
	p.choosePorts = func(bindAddress string) (ports, error) {
		chosen, err := freePorts(bindAddress)
		if first {
			first, chosen.etcd = false, taken
		}
		return chosen, err
	}
}
