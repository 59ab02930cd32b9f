{{/*
The configuration of the kube-scheduler beside Corral: the file of scheduler-config/ for its minor version, in which only that is
changed which settings say as well. Word for word, comments and all, where they change nothing.
*/}}

{{/* The minor version of kube-scheduler, such as 1.36. */}}
{{- define "corral.minor" -}}
{{- $image := .Values.scheduler.image -}}
{{- $minor := .Values.scheduler.minor | default (regexFind "[0-9]+[.][0-9]+" $image.tag) -}}
{{- if not (.Files.Get (printf "files/scheduler-config/%s.yaml" $minor)) -}}
{{- fail (printf "scheduler.minor: there is no configuration for kube-scheduler %q; set it to a file of scheduler-config/" $minor) -}}
{{- end -}}
{{- $cluster := .Capabilities.KubeVersion.Version -}}
{{- if semverCompare (printf "<%s.0-0" $minor) $cluster -}}
{{- fail (printf "scheduler.image.tag: kube-scheduler may not be newer than the cluster, which is %s; this one is %s" $cluster $minor) -}}
{{- end -}}
{{- $minor -}}
{{- end }}

{{- define "corral.schedulerConfig" -}}
{{- $set := include "corral.settings" . | fromJson -}}
{{- $isMarked := include "corral.isMarked" . -}}
{{- $file := printf "scheduler-config/%s%s.yaml" (include "corral.minor" .) ($isMarked | empty | ternary "" "-marker") -}}
{{- $text := include "corral.text" (dict "root" . "file" $file) -}}
{{- $config := fromYaml $text -}}
{{- $shipped := toJson $config -}}
{{- $names := include "corral.schedulerNames" . -}}
{{- if not $names }}{{ fail "settings.scheduler_name: this kube-scheduler needs the name of its profile" }}{{ end -}}
{{- if has "default-scheduler" (splitList "," $names) -}}
{{- fail "settings.scheduler_name: no second kube-scheduler may have a profile default-scheduler: with mode: beside the cluster's own asks Corral" -}}
{{- end -}}
{{- $profiles := list -}}
{{- range splitList "," $names -}}
{{- $profile := first $config.profiles | deepCopy -}}
{{- $_ := set $profile "schedulerName" . -}}
{{- $share := get $set "percentage_of_nodes_to_score" -}}
{{- if and $share (ne (int $share) (get $profile "percentageOfNodesToScore" | default 0 | int)) -}}
{{- $_ := set $profile "percentageOfNodesToScore" (int $share) -}}
{{- end -}}
{{- $profiles = append $profiles $profile -}}
{{- end -}}
{{- $_ := set $config "profiles" $profiles -}}
{{- /* /bind is held for so long: kube-scheduler has to wait longer than that. */ -}}
{{- $held := addf (get $set "gang_bind_seconds" | default 280) (get $set "bind_seconds" | default 15) -}}
{{- if gt $held 295.0 -}}
{{- range $config.extenders -}}
{{- if .bindVerb }}{{ $_ := set . "httpTimeout" (printf "%ds" (addf $held 5 | ceil | int)) }}{{ end -}}
{{- end -}}
{{- end -}}
{{- if eq (toJson $config) $shipped }}{{ $text }}{{ else }}{{ toYaml $config }}{{ end -}}
{{- end }}
