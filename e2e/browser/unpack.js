// Unpacks a Chromium with every library it needs into TMPDIR and prints where it is.
import chromium from "@sparticuz/chromium";

process.stdout.write(await chromium.executablePath());
