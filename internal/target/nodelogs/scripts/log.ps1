# Prints the ends of LOG's newest logs, the newest last: the files that its service
# writes to, as nssm has it, and those where Windows nodes commonly have them.
$files = @()
$service = Get-ItemProperty -Path "HKLM:\SYSTEM\CurrentControlSet\Services\$env:LOG\Parameters" -ErrorAction SilentlyContinue
if ($service) { $files += @($service.AppStdout, $service.AppStderr) }
$files += @('C:\var\log', "C:\var\log\$env:LOG", 'C:\k', 'C:\k\logs' | ForEach-Object { Join-Path $_ "$env:LOG*" })
$found = @($files | Where-Object { $_ } | Get-Item -ErrorAction SilentlyContinue | Where-Object { -not $_.PSIsContainer -and $_.Name -match '\.(log|INFO|err)' } |
    Sort-Object FullName -Unique | Sort-Object LastWriteTime | Select-Object -Last 5)
if (-not $found) {
    "there is no log of $env:LOG where its service would write it, nor in C:\var\log or C:\k"
    exit 3
}
foreach ($file in $found) {
    "==> $($file.FullName)"
    $stream = [IO.File]::Open($file.FullName, [IO.FileMode]::Open, [IO.FileAccess]::Read, [IO.FileShare]'ReadWrite, Delete')
    $size = [Math]::Min($stream.Length, [long]$env:LIMIT / $found.Count)
    [void]$stream.Seek(-$size, [IO.SeekOrigin]::End)
    (New-Object IO.StreamReader $stream).ReadToEnd()
    $stream.Dispose()
}
