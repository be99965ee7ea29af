package resources

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	v1 "example.com/clusteredcache/api/v1"
)

// OverlayError says why spec.podTemplate cannot be merged, and what to do.
type OverlayError struct {
	// Path is where the fault is below spec.podTemplate, such as
	// "spec.containers[cache].foo". It is empty for a fault of the whole.
	Path string
	// Message says what is wrong there and what to do about it.
	Message string
}

func (e *OverlayError) Error() string {
	path := "spec.podTemplate"
	if e.Path != "" {
		path += "." + e.Path
	}
	return path + ": " + e.Message
}

var podTemplateType = reflect.TypeFor[corev1.PodTemplateSpec]()

// mergeOverlay merges overlay, a partial PodTemplateSpec in JSON, into own by
// strategic merge. In the result the cache's own container comes first, because
// `kubectl logs` and `kubectl exec` use the first one by default. The error is an
// *OverlayError.
func mergeOverlay(own *corev1ac.PodTemplateSpecApplyConfiguration, overlay []byte) (*corev1ac.PodTemplateSpecApplyConfiguration, error) {
	base, err := asMap(own)
	if err != nil {
		return nil, &OverlayError{Message: err.Error()}
	}
	patch, err := readOverlay(overlay, base)
	if err != nil {
		return nil, err
	}
	merged, err := strategicpatch.StrategicMergeMapPatch(base, patch, corev1.PodTemplateSpec{})
	if err != nil {
		return nil, &OverlayError{Message: "cannot be merged: " + err.Error()}
	}
	template, err := decodeStrictly(merged)
	if err != nil {
		return nil, err
	}
	if err := keepsWhatIsOurs(own, template); err != nil {
		return nil, err
	}
	return template, nil
}

// asMap returns own as decoded JSON, with whole numbers as int64 as in the overlay.
// Strategic merge compares keys without converting them.
func asMap(own *corev1ac.PodTemplateSpecApplyConfiguration) (map[string]any, error) {
	encoded, err := json.Marshal(own)
	if err != nil {
		return nil, err
	}
	var base map[string]any
	err = utiljson.Unmarshal(encoded, &base)
	return base, err
}

// readOverlay decodes and checks the overlay. It removes from base what the overlay
// replaces or deletes as a whole.
func readOverlay(overlay []byte, base map[string]any) (map[string]any, error) {
	var value any
	if err := utiljson.Unmarshal(overlay, &value); err != nil {
		return nil, &OverlayError{Message: "is not JSON: " + err.Error()}
	}
	object, isObject := value.(map[string]any)
	if !isObject {
		return nil, &OverlayError{Message: "must be an object with metadata and spec, as the template of a StatefulSet"}
	}
	root := place{typ: podTemplateType, own: base}
	if _, marked := object[directive]; marked {
		return nil, root.fault(replacesOurs)
	}
	checked, err := root.check(object)
	if err != nil {
		return nil, err
	}
	return checked.(map[string]any), nil
}

// decodeStrictly decodes the merged template and refuses unknown fields. It is a
// second check for what place.check accepts by mistake.
func decodeStrictly(merged map[string]any) (*corev1ac.PodTemplateSpecApplyConfiguration, error) {
	encoded, err := json.Marshal(merged)
	if err != nil {
		return nil, &OverlayError{Message: "cannot be merged: " + err.Error()}
	}
	decoder := json.NewDecoder(bytes.NewReader(encoded))
	decoder.DisallowUnknownFields()
	template := &corev1ac.PodTemplateSpecApplyConfiguration{}
	if err := decoder.Decode(template); err != nil {
		return nil, &OverlayError{Message: "is not a pod template: " + err.Error()}
	}
	return template, nil
}

// keepsWhatIsOurs refuses a merged template in which the overlay changed what only
// the cache may set. It also puts the cache's own container first.
func keepsWhatIsOurs(own, merged *corev1ac.PodTemplateSpecApplyConfiguration) error {
	for _, rule := range []func(own, merged *corev1ac.PodTemplateSpecApplyConfiguration) *OverlayError{
		keepsSelectorLabels,
		keepsConfigHash,
		keepsContainerFirst,
		keepsImage,
		keepsRestartPolicy,
		keepsTokenOut,
	} {
		if fault := rule(own, merged); fault != nil {
			return fault
		}
	}
	return nil
}

func keepsSelectorLabels(own, merged *corev1ac.PodTemplateSpecApplyConfiguration) *OverlayError {
	for _, label := range []string{v1.NameLabel, v1.InstanceLabel} {
		if merged.Labels[label] != own.Labels[label] {
			return &OverlayError{
				Path:    "metadata.labels[" + label + "]",
				Message: "the pods are found by this label: leave it out",
			}
		}
	}
	return nil
}

func keepsConfigHash(own, merged *corev1ac.PodTemplateSpecApplyConfiguration) *OverlayError {
	if merged.Annotations[v1.ConfigHashAnnotation] == own.Annotations[v1.ConfigHashAnnotation] {
		return nil
	}
	return &OverlayError{
		Path:    "metadata.annotations[" + v1.ConfigHashAnnotation + "]",
		Message: "the reconciler writes this annotation: leave it out",
	}
}

func keepsContainerFirst(_, merged *corev1ac.PodTemplateSpecApplyConfiguration) *OverlayError {
	containers := merged.Spec.Containers
	i := slices.IndexFunc(containers, func(c corev1ac.ContainerApplyConfiguration) bool {
		return c.Name != nil && *c.Name == v1.ContainerName
	})
	if i < 0 {
		return &OverlayError{Path: "spec.containers", Message: replacesOurs}
	}
	container := containers[i]
	merged.Spec.Containers = slices.Insert(slices.Delete(containers, i, i+1), 0, container)
	return nil
}

func keepsImage(own, merged *corev1ac.PodTemplateSpecApplyConfiguration) *OverlayError {
	image := merged.Spec.Containers[0].Image
	if image != nil && *image == *own.Spec.Containers[0].Image {
		return nil
	}
	return &OverlayError{
		Path:    "spec.containers[" + v1.ContainerName + "].image",
		Message: "the image comes from spec.image and spec.version of the cache: set those",
	}
}

func keepsRestartPolicy(_, merged *corev1ac.PodTemplateSpecApplyConfiguration) *OverlayError {
	if merged.Spec.RestartPolicy == nil {
		return nil
	}
	return &OverlayError{
		Path:    "spec.restartPolicy",
		Message: "nodes are always restarted: leave it out",
	}
}

// clientOfAPIServer is the name of the signer whose certificates authenticate a pod
// as its ServiceAccount to the API server.
const clientOfAPIServer = "kubernetes.io/kube-apiserver-client-pod"

// keepsTokenOut refuses every way to give the pods credentials for the API server.
// It allows Secrets, because in Kubernetes everyone who can create pods can mount
// every Secret of the namespace.
func keepsTokenOut(_, merged *corev1ac.PodTemplateSpecApplyConfiguration) *OverlayError {
	const message = "nodes get no credentials for the API server: leave it out"
	if automount := merged.Spec.AutomountServiceAccountToken; automount == nil || *automount {
		return &OverlayError{Path: "spec.automountServiceAccountToken", Message: message}
	}
	for _, volume := range merged.Spec.Volumes {
		if volume.Projected == nil {
			continue
		}
		for i, source := range volume.Projected.Sources {
			what := ""
			switch certificate := source.PodCertificate; {
			case source.ServiceAccountToken != nil:
				what = "serviceAccountToken"
			case certificate != nil && certificate.SignerName != nil && *certificate.SignerName == clientOfAPIServer:
				what = "podCertificate"
			default:
				continue
			}
			return &OverlayError{
				Path:    fmt.Sprintf("spec.volumes[%s].projected.sources[%d].%s", *volume.Name, i, what),
				Message: message,
			}
		}
	}
	return nil
}
