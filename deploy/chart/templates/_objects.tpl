{{/*
The manifests of deploy/ are the one source. files/ links to them, and a template here says what values change in them:

    files/rbac.yaml ──corral.text──▶ text ──corral.objects──▶ objects ──templates/rbac.yaml──▶ what is applied

With the values as they come nothing is changed, and the chart is the manifests, object by object.
*/}}

{{/* A shipped file with the release's namespace and the names of its schedulers. Of: root, file. */}}
{{- define "corral.text" -}}
{{- $text := .root.Files.Get (printf "files/%s" .file) -}}
{{- if not $text }}{{ fail (printf "the chart has no files/%s" .file) }}{{ end -}}
{{- $name := "schedulerName.orValue('')" -}}
{{- $text
  | replace "corral-system" .root.Release.Namespace
  | replace (printf "%s == 'corral'" $name) (printf "%s %s" $name (include "corral.isOurScheduler" .root)) -}}
{{- end }}

{{/* The objects in a shipped file, as JSON. Of: root, file. */}}
{{- define "corral.objects" -}}
{{- $objects := list -}}
{{- range splitList "\n---\n" (include "corral.text" .) -}}
{{- $objects = append $objects (printf "%s\n" . | fromYaml) -}}
{{- end -}}
{{- toJson $objects -}}
{{- end }}

{{/* REPOSITORY:TAG, or REPOSITORY@DIGEST where a digest is given. Of: image, tag (where the image names none; "": it has to). */}}
{{- define "corral.image" -}}
{{- if .image.digest -}}
{{ .image.repository }}@{{ .image.digest }}
{{- else if or .image.tag .tag -}}
{{ .image.repository }}:{{ .image.tag | default .tag }}
{{- else -}}
{{- fail (printf "image %s: needs a tag or a digest" .image.repository) -}}
{{- end -}}
{{- end }}

{{/* A ClusterRoleBinding to Corral's own account, as JSON. Of: root, role. */}}
{{- define "corral.binding" -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {{ .role }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: {{ .role }}
subjects:
- kind: ServiceAccount
  name: corral
  namespace: {{ .root.Release.Namespace }}
{{- end }}
