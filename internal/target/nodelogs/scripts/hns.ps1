# Prints what the Host Networking Service has: networks, endpoints, namespaces, policies.
$program = 'C:\Windows\System32\hnsdiag.exe'
if (-not (Test-Path $program)) {
    "there is no $program"
    exit 3
}
foreach ($how in @('list', 'all'), @('list', 'all', '-d')) {
    "==> hnsdiag $how"
    & $program $how
}
