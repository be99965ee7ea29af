# docker build --build-arg VERSION="$(git describe --tags --always)" -t clusteredcache .
FROM --platform=$BUILDPLATFORM docker.io/library/golang:1.26 AS build
WORKDIR /src

# A layer of its own: it is made anew only when a module changes.
COPY go.mod go.sum ./
RUN go mod download

COPY api api
COPY cmd cmd
COPY reconcile reconcile
ARG VERSION=v0.0.0-dev
ARG TARGETOS
ARG TARGETARCH
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH \
    go build -trimpath -buildvcs=false -ldflags "-s -w -X main.version=$VERSION" -o /clusteredcache ./cmd/clusteredcache

FROM scratch
# For API servers whose certificate comes from a public authority.
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /clusteredcache /clusteredcache
USER 65532:65532
ENTRYPOINT ["/clusteredcache"]
