# Prints the names of crash dumps, with their sizes and times. Their contents stay.
$places = 'C:\Windows\MEMORY.DMP', 'C:\Windows\Minidump\*.dmp', 'C:\localdumps\*.dmp', 'C:\Windows\LiveKernelReports\*.dmp',
    'C:\Users\*\AppData\Local\CrashDumps\*.dmp', 'C:\Windows\System32\config\systemprofile\AppData\Local\CrashDumps\*.dmp',
    'C:\ProgramData\Microsoft\Windows\WER\ReportQueue\*\*.dmp', 'C:\ProgramData\Microsoft\Windows\WER\ReportArchive\*\*.dmp'
$found = @(Get-Item -Path $places -Force -ErrorAction SilentlyContinue | Sort-Object LastWriteTime)
foreach ($file in $found) {
    '{0:o} {1} {2}' -f $file.LastWriteTimeUtc, $file.Length, $file.FullName
}
"$($found.Count) crash dumps"
