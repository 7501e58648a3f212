# Takes away the rules of each of REMOVE, names with blanks between them, and lets others
# reach PORT of this node, where one is given. A rule has the name of its test's
# namespace; the names of all that there are then are told.
$group = 'op-readiness'
$remove = $env:REMOVE -split ' '
Get-NetFirewallRule -Group $group -ErrorAction SilentlyContinue | Where-Object { $remove -contains $_.DisplayName } | Remove-NetFirewallRule
if ($env:PORT) {
    foreach ($protocol in 'TCP', 'UDP') {
        New-NetFirewallRule -DisplayName $env:NAMESPACE -Group $group -Direction Inbound -Action Allow -Protocol $protocol -LocalPort $env:PORT | Out-Null
    }
}
@{ rules = @(Get-NetFirewallRule -Group $group -ErrorAction SilentlyContinue | ForEach-Object { $_.DisplayName }) }
