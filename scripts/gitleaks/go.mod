module github.com/windows-op-readiness/windows-op-readiness/scripts/gitleaks

go 1.26.0

require (
	github.com/BurntSushi/toml v1.5.0
	github.com/zricethezav/gitleaks/v8 v8.30.1
)
