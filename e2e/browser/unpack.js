// Unpacks Chromium with its libraries into TMPDIR and prints its path.
import chromium from "@sparticuz/chromium";

process.stdout.write(await chromium.executablePath());
