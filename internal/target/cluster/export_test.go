package cluster

import "time"

// ConnectWithin is [Connect] with another time for every request.
func ConnectWithin(t Target, limit time.Duration) (*Cluster, error) {
	return connect(t, limit, &outages{})
}
