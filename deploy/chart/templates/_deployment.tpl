{{/* Puts values into the Deployment of a shipped file. Of: root, deployment. */}}
{{- define "corral.fillDeployment" -}}
{{- $values := .root.Values -}}
{{- $spec := .deployment.spec -}}
{{- $pod := $spec.template.spec -}}
{{- $_ := set $spec "replicas" (include "corral.replicas" .root | int) -}}
{{- $metadata := $spec.template.metadata -}}
{{- $annotations := merge (dict) $values.podAnnotations (include "corral.checksums" .root | fromYaml) -}}
{{- if $annotations }}{{ $_ := set $metadata "annotations" $annotations }}{{ end -}}
{{- $_ := set $metadata "labels" (merge $metadata.labels $values.podLabels) -}}
{{- if eq $values.mode "beside" -}}
{{- with $values.beside.nodeName }}{{ $_ := set $pod "nodeName" . }}{{ end -}}
{{- end -}}
{{- with $values.image.pullSecrets }}{{ $_ := set $pod "imagePullSecrets" . }}{{ end -}}
{{- range $name := list "priorityClassName" "nodeSelector" "tolerations" "affinity" -}}
{{- with get $values $name }}{{ $_ := set $pod $name . }}{{ end -}}
{{- end -}}
{{- range concat ($pod.initContainers | default list) $pod.containers -}}
{{- include "corral.fillContainer" (dict "root" $.root "container" .) -}}
{{- end -}}
{{- end }}

{{- define "corral.fillContainer" -}}
{{- $values := .root.Values -}}
{{- $isScheduler := eq .container.name "kube-scheduler" -}}
{{- $own := $isScheduler | ternary $values.scheduler $values -}}
{{- $tag := $isScheduler | ternary "" .root.Chart.AppVersion -}}
{{- $_ := set .container "image" (include "corral.image" (dict "image" $own.image "tag" $tag)) -}}
{{- with $values.image.pullPolicy }}{{ $_ := set $.container "imagePullPolicy" . }}{{ end -}}
{{- if ne .container.name "token" -}}
{{- with $own.resources }}{{ $_ := set $.container "resources" . }}{{ end -}}
{{- end -}}
{{- if eq .container.name "corral" -}}
{{- $_ := set .container "env" (include "corral.environment" . | fromJsonArray) -}}
{{- end -}}
{{- end }}

{{/* The environment of a shipped container with the settings of values, as JSON. Of: root, container. */}}
{{- define "corral.environment" -}}
{{- $set := include "corral.settings" .root | fromJson -}}
{{- $variables := list -}}
{{- $names := list -}}
{{- range .container.env -}}
{{- $name := .name | trimPrefix "CORRAL_" | lower -}}
{{- if hasKey $set $name }}{{ $_ := set . "value" (get $set $name) }}{{ end -}}
{{- $variables = append $variables . -}}
{{- $names = append $names $name -}}
{{- end -}}
{{- range $name, $text := $set -}}
{{- if not (has $name $names) -}}
{{- $variables = append $variables (dict "name" (printf "CORRAL_%s" (upper $name)) "value" $text) -}}
{{- end -}}
{{- end -}}
{{- toJson $variables -}}
{{- end }}

{{/* Annotations that start new pods where what they read only at their start is not as shipped. */}}
{{- define "corral.checksums" -}}
{{- if eq .Values.mode "sidecar" -}}
{{- $shipped := include "corral.text" (dict "root" . "file" "scheduler-config/1.36.yaml") -}}
{{- $config := include "corral.schedulerConfig" . -}}
{{- if ne $config $shipped }}
corral.dev/scheduler-config: {{ sha256sum $config | trunc 16 }}
{{- end }}
{{- end }}
{{- if .Values.webhook.enabled }}
corral.dev/webhook: {{ include "corral.webhookSettings" . | sha256sum | trunc 16 }}
{{- end }}
{{- if .Values.api.enabled }}
corral.dev/api: "on"
{{- end }}
{{- end }}

{{/* How many pods. */}}
{{- define "corral.replicas" -}}
{{- kindIs "invalid" .Values.replicas | ternary 2 .Values.replicas | int -}}
{{- end }}
