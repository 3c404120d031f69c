import {
  Group,
  Input,
  NativeSelect,
  SegmentedControl,
  Stack,
  useMantineColorScheme,
} from "@mantine/core";
import { type Preferences, RELEASES, TRANSPORTS, type Transport } from "./preferences.ts";

const SCHEMES = [
  { value: "auto", label: "System" },
  { value: "light", label: "Light" },
  { value: "dark", label: "Dark" },
];

/** Controls for the transport, the release policy and the colour scheme. */
export function PreferencesPanel({ preferences }: { readonly preferences: Preferences }) {
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  return (
    <Stack gap="xs" p="sm">
      <Stack gap={4}>
        <Input.Label size="xs" labelElement="div" id="transport">
          Transport
        </Input.Label>
        <SegmentedControl
          aria-labelledby="transport"
          fullWidth
          size="xs"
          data={TRANSPORTS.map((transport) => ({ ...transport }))}
          value={preferences.transport}
          onChange={(value) => preferences.setTransport(value as Transport)}
        />
      </Stack>
      <Group grow>
        <NativeSelect
          label="Release"
          size="xs"
          data={RELEASES.map((release) => ({ ...release }))}
          value={preferences.release}
          onChange={(event) =>
            preferences.setRelease(event.currentTarget.value as Preferences["release"])
          }
        />
        <NativeSelect
          label="Colours"
          size="xs"
          data={SCHEMES}
          value={colorScheme}
          onChange={(event) => setColorScheme(event.currentTarget.value as typeof colorScheme)}
        />
      </Group>
    </Stack>
  );
}
