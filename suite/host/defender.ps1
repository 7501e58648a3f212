# What Microsoft Defender leaves out on this node, and where containerd keeps its files:
# the lines of its configuration, as it writes them.
$found = @{
    service   = [string](Get-Service -Name WinDefend -ErrorAction SilentlyContinue).Status
    mode      = ''
    processes = @()
    paths     = @()
    root      = ''
    state     = ''
}
if ($found.service -eq 'Running') {
    $found.mode = [string](Get-MpComputerStatus).AMRunningMode
    $preference = Get-MpPreference
    $found.processes = @($preference.ExclusionProcess | Where-Object { $_ } | ForEach-Object { [Environment]::ExpandEnvironmentVariables($_) })
    $found.paths = @($preference.ExclusionPath | Where-Object { $_ } | ForEach-Object { [Environment]::ExpandEnvironmentVariables($_) })
}
$containerd = Get-CimInstance Win32_Process -Filter "Name = 'containerd.exe'" | Select-Object -First 1
$found.containerd = [string]$containerd.ExecutablePath
$found.command = [string]$containerd.CommandLine
if ($found.containerd) {
    $options = @()
    if ($found.command -match '\s(--config|-c)[ =]("(?<file>[^"]+)"|(?<file>\S+))') {
        $options = '--config', $Matches.file
    }
    foreach ($line in & $found.containerd @options config dump) {
        if ($line -match '^(?<key>root|state) = (?<value>.*)$' -and -not $found[$Matches.key]) {
            $found[$Matches.key] = $Matches.value
        }
    }
}
$found
