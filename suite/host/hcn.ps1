# Does to a host network of its own, named NAME, what ACTION says, and reports what is
# there then. The network is a private one: it has no adapter of the node, and the node
# has none in it.
$failed = ''
$seen = @{ networks = @(); own = @(); endpoints = @() }
try {
    Add-Type -TypeDefinition @'
using System.Runtime.InteropServices;
public static class Compute {
    [DllImport("vmcompute.dll", ExactSpelling = true)]
    public static extern int HNSCall([MarshalAs(UnmanagedType.LPWStr)] string method, [MarshalAs(UnmanagedType.LPWStr)] string path, [MarshalAs(UnmanagedType.LPWStr)] string request, [MarshalAs(UnmanagedType.LPWStr)] out string response);
}
'@
    function Send($method, $path, $request) {
        $body = ''
        if ($request) { $body = ConvertTo-Json -InputObject $request -Compress -Depth 8 }
        $said = ''
        $code = [Compute]::HNSCall($method, $path, $body, [ref]$said)
        if ($code -ne 0) { throw ('HNSCall {0} {1} returned 0x{2:X8}' -f $method, $path, $code) }
        $response = ConvertFrom-Json -InputObject $said
        if (-not $response.Success) { throw ('HNSCall {0} {1} failed: {2}' -f $method, $path, $response.Error) }
        if ($null -ne $response.Output) { $response.Output | ForEach-Object { $_ } }
    }
    function Find-Network($name) { Send 'GET' '/networks/' | Where-Object { $_.Name -like $name } }
    function Find-Endpoint($networks) { Send 'GET' '/endpoints/' | Where-Object { @($networks.ID) -contains $_.VirtualNetwork } }
    function Remove-Network($name) {
        foreach ($network in @(Find-Network $name)) {
            foreach ($endpoint in @(Find-Endpoint $network)) { Send 'DELETE' "/endpoints/$($endpoint.ID)" | Out-Null }
            Send 'DELETE' "/networks/$($network.ID)" | Out-Null
        }
    }
    $rules = @(@{ Type = 'ACL'; Action = 'Block'; Direction = 'In'; Protocol = 6; LocalPorts = $env:PORT; RuleType = 'Switch'; Priority = 200 })
    switch ($env:ACTION) {
        'sweep' { Remove-Network 'op-readiness-hcn-*' }
        'make' {
            $network = Send 'POST' '/networks/' @{ Name = $env:NAME; Type = 'Private'; Subnets = @(@{ AddressPrefix = '192.0.2.0/28'; GatewayAddress = '192.0.2.1' }) }
            Send 'POST' '/endpoints/' @{ Name = $env:NAME; VirtualNetwork = $network.ID; IPAddress = '192.0.2.5'; Policies = $rules } | Out-Null
        }
        'change' {
            $endpoint = Find-Endpoint (Find-Network $env:NAME)
            Send 'POST' "/endpoints/$($endpoint.ID)" @{ ID = $endpoint.ID; VirtualNetwork = $endpoint.VirtualNetwork; Policies = $rules } | Out-Null
        }
        'remove' { Remove-Network $env:NAME }
    }
    $own = @(Find-Network $env:NAME)
    $seen.networks = @(Find-Network '*' | ForEach-Object { @{ id = [string]$_.ID; name = [string]$_.Name } })
    $seen.own = @($own | ForEach-Object { @{ type = [string]$_.Type; subnets = @($_.Subnets | ForEach-Object { [string]$_.AddressPrefix }) } })
    if ($own) {
        $seen.endpoints = @(Find-Endpoint $own | ForEach-Object {
            $found = @($_.Policies | Where-Object { $_.Type -eq 'ACL' } | ForEach-Object {
                '{0} {1} {2} {3}' -f $_.Action, $_.Direction, $_.Protocol, $_.LocalPorts
            })
            @{ address = [string]$_.IPAddress; rules = $found }
        })
    }
} catch {
    $failed = [string]$_.Exception.Message
}
$seen.failed = $failed
$seen
