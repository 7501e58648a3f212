# What the node's interfaces are, as the node itself says.
@{
    hostname  = [Net.Dns]::GetHostName()
    addresses = @(Get-NetIPAddress | ForEach-Object { $_.IPAddress })
    tcp       = @(Get-NetTCPConnection -State Listen | ForEach-Object { [int]$_.LocalPort } | Sort-Object -Unique)
    udp       = @(Get-NetUDPEndpoint | ForEach-Object { [int]$_.LocalPort } | Sort-Object -Unique)
}
