"""Kueue's scenarios asked of the product.

scenario ─objects─▶ Kubernetes objects ─told─▶ nodes or sentences ─outcome─▶ Kueue's form
a difference ─changes─▶ what the product asks instead, if that explains it exactly
"""
