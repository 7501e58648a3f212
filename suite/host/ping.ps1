# Pings each of TARGETS, "address,port" with blanks between them, three times, and
# connects to its port once.
$found = @{}
foreach ($target in $env:TARGETS -split ' ') {
    $address, $port = $target -split ','
    $answers = 0
    foreach ($n in 1..3) {
        try {
            if ((New-Object Net.NetworkInformation.Ping).Send($address, 2000).Status -eq 'Success') { $answers++ }
        } catch { }
    }
    $connects = $false
    $client = New-Object Net.Sockets.TcpClient ([Net.IPAddress]::Parse($address).AddressFamily)
    try { $connects = $client.ConnectAsync($address, [int]$port).Wait(3000) } catch { }
    $client.Dispose()
    $found[$address] = @{ answers = $answers; connects = $connects }
}
@{ pings = $found }
