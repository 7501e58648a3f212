# Prints the newest events of what containers on Windows rest on, in the order of time.
$logs = 'System', 'Application', 'Microsoft-Windows-Hyper-V-Compute-Admin', 'Microsoft-Windows-Hyper-V-Compute-Operational',
    'Microsoft-Windows-Host-Network-Service-Admin', 'Microsoft-Windows-Host-Network-Service-Operational'
foreach ($log in $logs) {
    "==> $log"
    try {
        Get-WinEvent -LogName $log -MaxEvents 2000 | Sort-Object TimeCreated | ForEach-Object {
            '{0:o} {1} {2} {3}: {4}' -f $_.TimeCreated.ToUniversalTime(), $_.LevelDisplayName, $_.ProviderName, $_.Id, ($_.Message -replace '\s+', ' ')
        }
    } catch {
        "not read: $($_.Exception.Message)"
    }
}
