package config

import (
	"fmt"
	"hash/fnv"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const week = 7 * 24 * time.Hour

// given lists the fields of the schedule that have a value.
func (s Schedule) given() []string {
	var names []string
	for name, is := range map[string]bool{"every": s.Every != 0, "cron": s.Cron != "", "interval": s.Interval != 0, "minimumInterval": s.MinimumInterval != 0} {
		if is {
			names = append(names, name)
		}
	}
	return names
}

// Resolve turns every into the cron expression of the job: a minute and an
// hour that only its name decides, so that jobs are spread over the day and
// another job does not move it. The rest is as it was.
func (s Schedule) Resolve(job string) Schedule {
	if s.Every != 0 {
		s.Cron, s.Every = spread(time.Duration(s.Every), job), 0
	}
	return s
}

// RunsPerWeek is how often a job runs in a week. After a minimum interval
// comes the run itself, which takes as long as expected.
func (s Schedule) RunsPerWeek(expected time.Duration) float64 {
	switch {
	case s.Every != 0:
		return float64(week) / float64(s.Every)
	case s.Interval != 0:
		return float64(week) / float64(s.Interval)
	case s.MinimumInterval != 0:
		return float64(week) / float64(time.Duration(s.MinimumInterval)+expected)
	}
	return cronRunsPerWeek(s.Cron)
}

// Period is the usual time between two runs.
func (s Schedule) Period() time.Duration {
	if runs := s.RunsPerWeek(0); runs > 0 {
		return time.Duration(float64(week) / runs)
	}
	return 0
}

// everyProblem says why a job cannot run once in d at times that cron can say.
func everyProblem(d time.Duration) error {
	day := 24 * time.Hour
	if d >= time.Hour && d%time.Hour == 0 && day%d == 0 || d == week {
		return nil
	}
	return fmt.Errorf("%s cannot be spread over the day: use 1h, 2h, 3h, 4h, 6h, 8h, 12h, 24h or 168h, or say interval", Duration(d))
}

// spread is the cron expression for once in every, at a time that name decides.
func spread(every time.Duration, name string) string {
	h := fnv.New32a()
	fmt.Fprint(h, name)
	slot := int(h.Sum32() % uint32(every/time.Minute))
	minute, hour := slot%60, slot/60%24
	switch every {
	case week:
		return fmt.Sprintf("%d %d * * %d", minute, hour, slot/(60*24))
	case 24 * time.Hour:
		return fmt.Sprintf("%d %d * * *", minute, hour)
	case time.Hour:
		return fmt.Sprintf("%d * * * *", minute)
	}
	var hours []string
	for ; hour < 24; hour += int(every / time.Hour) {
		hours = append(hours, strconv.Itoa(hour))
	}
	return fmt.Sprintf("%d %s * * *", minute, strings.Join(hours, ","))
}

// cronFields are the fields of a cron expression and how far they go.
var cronFields = []struct {
	name      string
	low, high int
}{{"minute", 0, 59}, {"hour", 0, 23}, {"day of the month", 1, 31}, {"month", 1, 12}, {"day of the week", 0, 6}}

var cronPart = regexp.MustCompile(`^(?:\*|(\d{1,2})(?:-(\d{1,2}))?)(?:/(\d{1,2}))?$`)

// parseCron returns how many values each field of a cron expression of numbers
// takes.
func parseCron(expr string) ([]int, error) {
	fields := strings.Fields(expr)
	if len(fields) != len(cronFields) {
		return nil, fmt.Errorf("%q is not a cron expression: write minute, hour, day, month and day of the week, such as \"17 3 * * *\"", clip(expr))
	}
	counts := make([]int, len(fields))
	for i, f := range fields {
		limits := cronFields[i]
		values := map[int]bool{}
		for _, part := range strings.Split(f, ",") {
			m := cronPart.FindStringSubmatch(part)
			if m == nil {
				return nil, fmt.Errorf("the %s of %q is %q: use numbers, lists (1,2), ranges (1-5), * and steps (*/2)", limits.name, clip(expr), clip(part))
			}
			low, high, step := limits.low, limits.high, 1
			if m[1] != "" {
				low, _ = strconv.Atoi(m[1])
				if m[3] == "" {
					high = low
				}
			}
			if m[2] != "" {
				high, _ = strconv.Atoi(m[2])
			}
			if m[3] != "" {
				step, _ = strconv.Atoi(m[3])
			}
			if low < limits.low || high > limits.high || low > high || step < 1 {
				return nil, fmt.Errorf("the %s of %q is %q: use %d to %d", limits.name, clip(expr), clip(part), limits.low, limits.high)
			}
			for v := low; v <= high; v += step {
				values[v] = true
			}
		}
		counts[i] = len(values)
	}
	return counts, nil
}

// cronRunsPerWeek is how often an expression is due in a usual week.
func cronRunsPerWeek(expr string) float64 {
	n, err := parseCron(expr)
	if err != nil {
		return 0
	}
	days := 7 * float64(n[2]) / 31
	fields := strings.Fields(expr)
	switch {
	case fields[2] == "*":
		days = float64(n[4])
	case fields[4] != "*":
		days = min(7, days+float64(n[4])) // cron takes either
	}
	return float64(n[0]) * float64(n[1]) * days * float64(n[3]) / 12
}
