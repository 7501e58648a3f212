# Has the node reboot in DELAY seconds. It is told then, since shutdown counts minutes.
echo 'op-readiness: {"asked": true}'
sleep "$DELAY"
nsenter -t 1 -m -- shutdown -r now
