# Has the node reboot in DELAY seconds, so that this pod has ended by then.
shutdown.exe /r /f /t $env:DELAY /c "$env:NAMESPACE" | Out-Null
@{ asked = ($LASTEXITCODE -eq 0) }
