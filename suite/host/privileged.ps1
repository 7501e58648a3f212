# Tries, each by itself, what only a process of the host may do or see. NAME is that of
# what it makes and removes again; so is what a killed run has left of another name.
$found = @{}
$failed = @{}
function Attempt($what, $do) {
    try { $found[$what] = (& $do) -join ' ' } catch { $failed[$what] = [string]$_.Exception.Message }
}
Attempt 'services' { Get-Service -Name 'hns', 'vmcompute' | ForEach-Object { "$($_.Name)=$($_.Status)" } }
Attempt 'kubelet' { (Get-Process -Name kubelet).Id }
Attempt 'systems' {
    Add-Type -TypeDefinition @'
using System.Runtime.InteropServices;
public static class Compute {
    [DllImport("vmcompute.dll", ExactSpelling = true)]
    public static extern int HcsEnumerateComputeSystems([MarshalAs(UnmanagedType.LPWStr)] string query, [MarshalAs(UnmanagedType.LPWStr)] out string systems, [MarshalAs(UnmanagedType.LPWStr)] out string result);
}
'@
    $systems = ''
    $result = ''
    $code = [Compute]::HcsEnumerateComputeSystems('{}', [ref]$systems, [ref]$result)
    if ($code -ne 0) { throw ('HcsEnumerateComputeSystems returned 0x{0:X8}' -f $code) }
    $systems | ConvertFrom-Json | ForEach-Object { $_ } | ForEach-Object { $_.Id }
}
Attempt 'settings' {
    Get-Item -Path 'HKLM:\SOFTWARE\op-readiness-privileged-*' | Remove-Item -Recurse
    $key = "HKLM:\SOFTWARE\$env:NAME"
    New-Item -Path $key | Out-Null
    try {
        New-ItemProperty -Path $key -Name written -Value $env:NAME | Out-Null
        "read=$((Get-ItemProperty -Path $key).written)"
    } finally {
        Remove-Item -Path $key -Recurse
    }
    "left=$(@(Get-Item -Path 'HKLM:\SOFTWARE\op-readiness-privileged-*').Count)"
}
Attempt 'group' {
    Get-LocalGroup -Name 'op-readiness-privileged-*' | Remove-LocalGroup
    New-LocalGroup -Name $env:NAME | Out-Null
    try {
        "read=$((Get-LocalGroup -Name $env:NAME).Name)"
    } finally {
        Remove-LocalGroup -Name $env:NAME
    }
    "left=$(@(Get-LocalGroup -Name 'op-readiness-privileged-*').Count)"
}
Attempt 'event' { Get-WinEvent -LogName System -MaxEvents 1 | ForEach-Object { "$($_.TimeCreated.ToString('s')) $($_.ProviderName) $($_.Id)" } }
Attempt 'build' { (Get-CimInstance -ClassName Win32_OperatingSystem).BuildNumber }
@{ found = $found; failed = $failed }
