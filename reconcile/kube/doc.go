// Package kube finds the cluster that a run is meant for, and connects to it. It
// decides which kubeconfig counts, and which identity and namespace that gives. Its
// client knows the few kinds that we use. When the cluster refuses, Explain says in
// one sentence what to do about it.
//
//	flags, KUBECONFIG, pod, ~/.kube/config --Load--> Target --NewClient--> client.Client
//	                                                   \_____Explain(err)__> one sentence
//
// Connecting sends no request. Kinds and resources are fixed (Scheme, Mapper), so
// discovery is not needed. A Target comes from local files only.
package kube
