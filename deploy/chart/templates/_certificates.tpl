{{/*
The certificate of one of Corral's ports, which is a Secret named as its Service. It is
    made          by the chart, for ten years, and kept by upgrades
    cert-manager  asked of cert-manager, and signed by an authority of its own: that one stays when the certificate is
                  renewed, which the API server hears of a minute before Corral's pod has the file
    given         put there by you
*/}}

{{/* certificate and key, base64 as a Secret has them, as JSON; "" where the chart makes none. Of: root, port, name. */}}
{{- define "corral.madeCertificate" -}}
{{- if eq .port.certificate "made" -}}
{{- $namespace := .root.Release.Namespace -}}
{{- $there := lookup "v1" "Secret" $namespace .name | default dict -}}
{{- if and $there.data (hasKey $there.data "tls.crt") -}}
{{- pick $there.data "tls.crt" "tls.key" | toJson -}}
{{- else -}}
{{- $host := printf "%s.%s.svc" .name $namespace -}}
{{- $made := genSelfSignedCert $host (list) (list $host) 3650 -}}
{{- dict "tls.crt" (b64enc $made.Cert) "tls.key" (b64enc $made.Key) | toJson -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* What makes the Secret. Of: root, port, name, and made: as above. */}}
{{- define "corral.certificateObjects" -}}
{{- if .made }}
---
apiVersion: v1
kind: Secret
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace }}
type: kubernetes.io/tls
data:
{{ toYaml (fromJson .made) | indent 2 }}
{{- else if eq .port.certificate "cert-manager" }}
---
apiVersion: cert-manager.io/v1
kind: Issuer
metadata:
  name: {{ .name }}-authority
  namespace: {{ .root.Release.Namespace }}
spec:
  selfSigned: {}
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata:
  name: {{ .name }}-authority
  namespace: {{ .root.Release.Namespace }}
spec:
  secretName: {{ .name }}-authority
  commonName: {{ .name }}-authority
  isCA: true
  duration: 87600h
  privateKey: {algorithm: ECDSA, rotationPolicy: Never}
  issuerRef: {kind: Issuer, name: {{ .name }}-authority}
---
apiVersion: cert-manager.io/v1
kind: Issuer
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace }}
spec:
  ca: {secretName: {{ .name }}-authority}
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace }}
spec:
  secretName: {{ .name }}
  dnsNames: [{{ .name }}.{{ .root.Release.Namespace }}.svc]
  privateKey: {algorithm: ECDSA, rotationPolicy: Always}
  issuerRef: {kind: Issuer, name: {{ .name }}}
{{- end }}
{{- end }}
