#!/bin/bash
# Makes a node of the root folder in which it runs: what kind's own Dockerfile does,
# and the images in /archives into containerd's store.
# https://github.com/kubernetes-sigs/kind/blob/main/images/base/Dockerfile
set -o errexit -o nounset -o pipefail

rm -rf /lib/systemd/system/{multi-user,local-fs,basic}.target.wants/* /etc/systemd/system/*.wants/*
rm -f /lib/systemd/system/sockets.target.wants/*{udev,initctl}*
find /lib/systemd/system/sysinit.target.wants/ -name systemd-tmpfiles-setup.service -delete
echo ReadKMsg=no >>/etc/systemd/journald.conf
systemctl enable kubelet.service containerd.service undo-mount-hacks.service pod-network.path
systemctl mask systemd-binfmt.service

for program in containerd ctr containerd-shim-runc-v2; do
  ln -s "/usr/bin/$program" /usr/local/bin/
done
ln -s /usr/sbin/runc /usr/local/sbin/
mkdir -p /opt/cni /etc/kubernetes/manifests
ln -s /usr/lib/cni /opt/cni/bin
ctr oci spec |
  jq '.hooks.createContainer += [{"path": "/kind/bin/mount-product-files.sh"}] | del(.process.rlimits)' \
  >/etc/containerd/cri-base.json
# Root without CAP_SYS_RESOURCE may not lower this.
sed -i 's/restrict_oom_score_adj = false/restrict_oom_score_adj = true/' /etc/containerd/config.toml

containerd >/tmp/containerd.log 2>&1 &
for _ in {1..100}; do
  ctr version >/dev/null 2>&1 && break
  sleep 0.1
done
ctr --namespace k8s.io images import --label=io.cri-containerd.pinned=pinned --all-platforms --no-unpack /archives/images.tar
kill %1
wait

rm -rf /archives /setup.sh /var/cache/apt /var/lib/apt/lists /usr/share/{doc,man,locale,info} /run/* /tmp/* /var/log/*.log
