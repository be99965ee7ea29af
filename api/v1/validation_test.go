package v1

import (
	"os"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Exponents of millions are refused at once, because exact arithmetic with them
// would take minutes.
func TestAbsurdQuantities(t *testing.T) {
	for _, amount := range []string{"1e2147483640", "1e100000000", "-1e100000000"} {
		q := resource.MustParse(amount)
		storage := ClusteredCacheSpec{Version: "1", Size: 1, Engine: EngineCustom, Image: "x", Storage: &StorageSpec{Size: q}}
		limit := ClusteredCacheSpec{Version: "1", Size: 1, Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"memory": q}}}
		for name, spec := range map[string]*ClusteredCacheSpec{"storage": &storage, "limit": &limit} {
			if says := ValidateSpec(spec); says == "" {
				t.Errorf("%s: %s is taken", name, amount)
			}
		}
	}
	for _, amount := range []string{"0", "1n", "100m", "0.5", "1Gi", "1024Mi", "4Ei"} {
		q := resource.MustParse(amount)
		spec := ClusteredCacheSpec{Version: "1", Size: 1, Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": q}}}
		if says := ValidateSpec(&spec); says != "" {
			t.Errorf("%s: %s", amount, says)
		}
	}
}

// Every reason that a user can see has a row in the README of the API.
func TestReadmeHasReasons(t *testing.T) {
	source, err := os.ReadFile("conditions.go")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	reasons := regexp.MustCompile(`(?m)^\tReason\w+\s+= "(\w+)"`).FindAllStringSubmatch(string(source), -1)
	if len(reasons) == 0 {
		t.Fatal("no reason found in conditions.go")
	}
	for _, reason := range reasons {
		if !strings.Contains(string(readme), "\n| `"+reason[1]+"` |") {
			t.Errorf("no row for %s", reason[1])
		}
	}
}
