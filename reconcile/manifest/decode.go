package manifest

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	kjson "sigs.k8s.io/json"

	v1 "example.com/clusteredcache/api/v1"
)

// decodeStrictly decodes a cache. It refuses what a server with strict field
// validation would refuse.
func decodeStrictly(raw []byte, cache *v1.ClusteredCache) error {
	strict, err := kjson.UnmarshalStrict(raw, cache)
	if err != nil {
		err = cmp.Or(mistyped(err), wrongQuantity(raw), err)
	}
	if err == nil && len(strict) > 0 {
		texts := make([]string, 0, len(strict))
		for _, e := range strict {
			texts = append(texts, e.Error())
		}
		err = errors.New(strings.Join(texts, "; "))
	}
	if err == nil && cache.APIVersion != v1.GroupVersion.String() {
		err = fmt.Errorf("apiVersion %s is not supported: use %s", cache.APIVersion, v1.GroupVersion)
	}
	if err == nil && cache.Spec.Size == 0 && hasSpec(raw, "size") {
		err = errors.New("spec.size: " + v1.MessageSize) // if it were omitted, it would get a default
	}
	if err == nil && cache.Spec.Version == "" && !hasSpec(raw, "version") {
		err = errors.New("spec.version: Required value") // we would send an empty version
	}
	return err
}

// mistyped returns an error that names the field of the wrong type. It returns nil
// for any other error, and if the document as a whole is not an object.
func mistyped(err error) error {
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) || wrong.Field == "" {
		return nil
	}
	err = fmt.Errorf("%s: is a %s and must be a %s", wrong.Field, wrong.Value, wrong.Type)
	if wrong.Type.Kind() == reflect.String {
		err = fmt.Errorf("%w: put it in quotes", err)
	}
	return err
}

// wrongQuantity returns an error that names the first invalid quantity, or nil if
// all are valid. The error of the decoder does not name the field.
func wrongQuantity(raw []byte) error {
	var manifest struct {
		Spec struct {
			Resources map[string]map[string]json.RawMessage `json:"resources"`
			Storage   map[string]json.RawMessage            `json:"storage"`
		} `json:"spec"`
	}
	_ = json.Unmarshal(raw, &manifest) // a field of another type stays empty
	quantities := map[string]json.RawMessage{"spec.storage.size": manifest.Spec.Storage["size"]}
	for list, amounts := range manifest.Spec.Resources {
		for name, amount := range amounts {
			quantities["spec.resources."+list+"."+name] = amount
		}
	}
	for _, field := range slices.Sorted(maps.Keys(quantities)) {
		amount := quantities[field]
		if amount != nil && new(resource.Quantity).UnmarshalJSON(amount) != nil {
			return fmt.Errorf("%s: %s is not a quantity such as 512Mi or 500m", field, amount)
		}
	}
	return nil
}

// hasSpec reports whether the manifest has a field of spec. A decoded cache cannot
// distinguish an omitted field from a zero one.
func hasSpec(raw []byte, field string) bool {
	var manifest struct {
		Spec map[string]any `json:"spec"`
	}
	return json.Unmarshal(raw, &manifest) == nil && manifest.Spec[field] != nil
}
