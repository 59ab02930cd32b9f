{{/*
Corral's settings: what values say of them, how their environment is written, and what each of them makes necessary elsewhere:
rights (corral.roles), the scheduler's configuration (_scheduler.tpl), conditions of webhook and policies (corral.isOurScheduler).
*/}}

{{/* Setting -> its text in the environment, as JSON: those of values, and those that the chart derives. */}}
{{- define "corral.settings" -}}
{{- $texts := dict -}}
{{- range $name, $value := .Values.settings -}}
{{- $text := include "corral.settingText" $value -}}
{{- /* A request has commas and = of its own. */ -}}
{{- if and (eq $name "metric_shapes") (kindIs "map" $value) -}}
{{- $shapes := list -}}
{{- range $shape, $request := $value }}{{ $shapes = append $shapes (printf "%s:%s" $shape $request) }}{{ end -}}
{{- $text = join "; " $shapes -}}
{{- end -}}
{{- /* YAML takes a bare `on` for true. */ -}}
{{- if and (kindIs "bool" $value) (has $name (list "backfill" "native_pod_groups" "needs_nodes" "preempt")) -}}
{{- $text = ternary "on" "off" $value -}}
{{- end -}}
{{- $_ := set $texts $name $text -}}
{{- end -}}
{{- /* Gated pods are narrowed to their nodes: kube-scheduler may sample the others. */ -}}
{{- if and (or .Values.webhook.enabled .Values.policies.enabled) (not (hasKey $texts "percentage_of_nodes_to_score")) -}}
{{- $_ := set $texts "percentage_of_nodes_to_score" "0" -}}
{{- end -}}
{{- toJson $texts -}}
{{- end }}

{{/* Whether members are marked, and kube-scheduler asks about them alone; "": it asks about every pod. */}}
{{- define "corral.isMarked" -}}
{{- $set := include "corral.settings" . | fromJson -}}
{{- if get $set "marker_resource" | toString | eq "true" -}}
{{- if not .Values.webhook.enabled -}}
{{- fail "settings.marker_resource: the webhook gives members their marker: set webhook.enabled" -}}
{{- end -}}
{{- if ne (get $set "needs_nodes") "off" -}}
{{- fail "settings.marker_resource: to a node autoscaler a member with it fits on no node: set settings.needs_nodes to \"off\"" -}}
{{- end -}}
{{- if get $set "provisioning_class" -}}
{{- fail "settings.marker_resource: cluster-autoscaler has no node for a member with it: leave settings.provisioning_class out" -}}
{{- end -}}
{{- $names := include "corral.schedulerNames" . -}}
{{- $grouped := hasKey $set "kai_grouped_schedulers" | ternary (get $set "kai_grouped_schedulers") "kai-scheduler" | nospace -}}
{{- range splitList "," $grouped | compact -}}
{{- if or (not $names) (has . (splitList "," $names)) -}}
{{- fail (printf "settings.marker_resource: KAI's pod-grouper makes members of pods of %s when they are there already: leave that out of settings.kai_grouped_schedulers, or of settings.scheduler_name" .) -}}
{{- end -}}
{{- end -}}
true
{{- end -}}
{{- end }}

{{/* Fails where settings ask for what other values keep from happening. */}}
{{- define "corral.agreed" -}}
{{- $set := include "corral.settings" . | fromJson -}}
{{- if gt (get $set "born_seconds" | default "0" | float64) 0.0 -}}
{{- if not .Values.webhook.enabled -}}
{{- fail "settings.born_seconds: the webhook has pods born in place: set webhook.enabled" -}}
{{- end -}}
{{- if .Values.policies.enabled -}}
{{- fail "settings.born_seconds: policies gate pods before the webhook sees them: leave policies.enabled out" -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* A value as `CORRAL_…` is read: lists with commas, maps as NAME=VALUE,…, whole numbers without an exponent. */}}
{{- define "corral.settingText" -}}
{{- if kindIs "slice" . -}}
{{- join "," . -}}
{{- else if kindIs "map" . -}}
{{- $pairs := list -}}
{{- range $name, $values := . -}}
{{- range (kindIs "slice" $values | ternary $values (list $values)) -}}
{{- $pairs = append $pairs (printf "%s=%s" $name (include "corral.settingText" .)) -}}
{{- end -}}
{{- end -}}
{{- join "," $pairs -}}
{{- else if and (kindIs "float64" .) (eq . (floor .)) -}}
{{- int64 . -}}
{{- else -}}
{{- . -}}
{{- end -}}
{{- end }}

{{/* ClusterRole -> whether a setting needs it, as YAML: the table of app/cli/doctor/reading/rights.py (a test compares them). */}}
{{- define "corral.roles" -}}
{{- $set := include "corral.settings" . | fromJson -}}
{{- $isOn := dict -}}
{{- range list "fail_fast" "delete_excess_pods" "protect_held_nodes" "narrowed_pods_given_back" -}}
{{- $_ := set $isOn . (eq (get $set .) "true") -}}
{{- end -}}
{{- $isBornGivenBack := and (gt (get $set "born_seconds" | default "0" | float64) 0.0) (ne (get $set "born_pods_given_back") "false") -}}
{{- $isGivenBack := or $isOn.narrowed_pods_given_back $isBornGivenBack -}}
corral-evict: {{ or $isOn.fail_fast $isGivenBack (eq (get $set "disruption") "all") (eq (get $set "preempt") "on") }}
corral-suspend: {{ $isGivenBack }}
corral-delete-excess: {{ $isOn.delete_excess_pods }}
corral-namespaces: {{ and .Values.webhook.enabled (ne (include "corral.namespaceLabels" .) "") }}
corral-hypernodes: {{ ne (get $set "hyper_nodes_from") "" }}
corral-protect-nodes: {{ $isOn.protect_held_nodes }}
corral-native-pod-groups: {{ eq (get $set "native_pod_groups") "on" }}
corral-provisioning: {{ ne (get $set "provisioning_class") "" }}
corral-readers: {{ .Values.api.enabled }}
{{- end }}

{{/* The labels but the name that namespaces are selected by, with commas. */}}
{{- define "corral.namespaceLabels" -}}
{{- $keys := keys (.Values.admission.namespaceSelector.matchLabels | default dict) -}}
{{- range .Values.admission.namespaceSelector.matchExpressions }}{{ $keys = append $keys .key }}{{ end -}}
{{- without $keys "kubernetes.io/metadata.name" | join "," -}}
{{- end }}

{{/* The schedulerNames that Corral plans for, with commas; "": any. */}}
{{- define "corral.schedulerNames" -}}
{{- $set := include "corral.settings" . | fromJson -}}
{{- $names := hasKey $set "scheduler_name" | ternary (get $set "scheduler_name") "corral" | nospace -}}
{{- /* They become profiles, of which no two have one name, and texts in expressions. */ -}}
{{- if or (not (regexMatch "^([^,'\"\\\\]+(,[^,'\"\\\\]+)*)?$" $names)) (ne $names (splitList "," $names | uniq | join ",")) -}}
{{- fail (printf "settings.scheduler_name: expected different names between commas, such as corral,kai-scheduler; this is %q" $names) -}}
{{- end -}}
{{- $names -}}
{{- end }}

{{/* In CEL, after a schedulerName: that it is one of ours. Every pod has one. */}}
{{- define "corral.isOurScheduler" -}}
{{- $names := include "corral.schedulerNames" . -}}
{{- if not $names -}}
!= ''
{{- else if contains "," $names -}}
in ['{{ splitList "," $names | join "', '" }}']
{{- else -}}
== '{{ $names }}'
{{- end -}}
{{- end }}

{{/* Which namespaces are taken in, as JSON: those of values, but neither the system's nor Corral's own, which would wait for it. */}}
{{- define "corral.namespaceSelector" -}}
{{- $said := .Values.admission.namespaceSelector -}}
{{- $home := list "kube-system" .Release.Namespace | uniq -}}
{{- $others := dict "key" "kubernetes.io/metadata.name" "operator" "NotIn" "values" $home -}}
{{- $selector := dict "matchExpressions" (prepend ($said.matchExpressions | default list) $others) -}}
{{- with $said.matchLabels }}{{ $_ := set $selector "matchLabels" . }}{{ end -}}
{{- toJson $selector -}}
{{- end }}

{{/* A LabelSelector as `kubectl get --selector` writes it. */}}
{{- define "corral.selectorText" -}}
{{- $parts := list -}}
{{- range $key, $value := .matchLabels }}{{ $parts = append $parts (printf "%s=%s" $key $value) }}{{ end -}}
{{- range .matchExpressions -}}
{{- if has .operator (list "In" "NotIn") -}}
{{- $parts = append $parts (printf "%s %s (%s)" .key (lower .operator) (join "," .values)) -}}
{{- else -}}
{{- $parts = append $parts (printf "%s%s" (eq .operator "DoesNotExist" | ternary "!" "") .key) -}}
{{- end -}}
{{- end -}}
{{- join "," $parts -}}
{{- end }}

{{/* Which pods the webhook takes in, as Corral is told: the selectors of webhook.yaml are a coarse filter before it. */}}
{{- define "corral.webhookSettings" -}}
{{- /* Corral's default is for the namespace of the manifests, and for no selector of values. */}}
{{- if or .Values.admission.namespaceSelector (ne .Release.Namespace "corral-system") }}
CORRAL_ADMISSION_NAMESPACE_SELECTOR: {{ include "corral.namespaceSelector" . | fromJson | include "corral.selectorText" | quote }}
{{- end }}
{{- with .Values.admission.podSelector }}
CORRAL_ADMISSION_POD_SELECTOR: {{ include "corral.selectorText" . | quote }}
{{- end }}
{{- end }}
