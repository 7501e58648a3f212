package actions

import (
	"encoding/json"
	"io"
	"time"

	"github.com/windows-op-readiness/windows-op-readiness/internal/engine/plan"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
)

type matrix struct {
	Include []matrixShard `json:"include"`
}

type matrixShard struct {
	Shard   int `json:"shard"`
	Shards  int `json:"shards"`
	Cases   int `json:"cases"`
	Minutes int `json:"minutes"`
}

// WriteMatrix writes the shards of a plan as JSON for strategy.matrix.
func WriteMatrix(w io.Writer, p *result.Plan) error {
	var m matrix
	for i, load := range plan.Loads(p) {
		shard := matrixShard{Shard: i + 1, Shards: p.Shards, Minutes: int((load + time.Minute - 1) / time.Minute)}
		for k := range p.Cases {
			if p.Cases[k].Shard == shard.Shard {
				shard.Cases++
			}
		}
		m.Include = append(m.Include, shard)
	}
	return json.NewEncoder(w).Encode(m)
}
