# Lets others reach PORT of this node, or, without PORT, no longer. Rules are named after
# the namespace of their test; those whose namespace is not among NAMESPACES any more
# were left by tests that were killed.
$live = $env:NAMESPACES -split ' '
Get-NetFirewallRule -Group 'op-readiness' -ErrorAction SilentlyContinue |
    Where-Object { $_.DisplayName -eq $env:NAMESPACE -or $live -notcontains $_.DisplayName } |
    Remove-NetFirewallRule
if ($env:PORT) {
    foreach ($protocol in 'TCP', 'UDP') {
        New-NetFirewallRule -DisplayName $env:NAMESPACE -Group 'op-readiness' -Direction Inbound -Action Allow -Protocol $protocol -LocalPort $env:PORT | Out-Null
    }
}
@{ rules = @(Get-NetFirewallRule -Group 'op-readiness' -ErrorAction SilentlyContinue | Where-Object { $_.DisplayName -eq $env:NAMESPACE }).Count }
