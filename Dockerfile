# The image of Prow jobs of profile plain, and of whoever runs readiness in a
# cluster: op-readiness, and the kubectl that some tests call. e2e.test is not in
# it: a job fetches that of its cluster's version.
#
# cloudbuild.yaml builds it; docs/prow.md tells how, and what of it was tried.
FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
# With .git, from which the program has its version.
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -o /out/op-readiness ./cmd/op-readiness
# At most one minor version away from every Kubernetes that this project's jobs
# test, and held against the checksum of its release.
ARG KUBERNETES_VERSION=v1.35.4
RUN cp "$(/out/op-readiness e2e fetch --kubernetes-version "${KUBERNETES_VERSION}" kubectl)" /out/kubectl

# With the C library: the released e2e.test is linked against it.
FROM gcr.io/distroless/base-debian12:nonroot
COPY --from=build /out/op-readiness /out/kubectl /usr/local/bin/
# Anybody may write here, whoever the pod runs as.
ENV OP_READINESS_CACHE=/tmp/op-readiness
ENTRYPOINT ["/usr/local/bin/op-readiness"]
