import {
  Group,
  Input,
  NativeSelect,
  SegmentedControl,
  Stack,
  useMantineColorScheme,
} from "@mantine/core";
import { type Choices, RELEASES, TRANSPORTS, type Transport } from "./choices.ts";

const SCHEMES = [
  { value: "auto", label: "System" },
  { value: "light", label: "Light" },
  { value: "dark", label: "Dark" },
];

/** How the page talks to the server and how it looks; nothing here leaves the chat. */
export function ConnectionPanel({ choices }: { readonly choices: Choices }) {
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
          value={choices.transport}
          onChange={(value) => choices.setTransport(value as Transport)}
        />
      </Stack>
      <Group grow>
        <NativeSelect
          label="Release"
          size="xs"
          data={RELEASES.map((release) => ({ ...release }))}
          value={choices.release}
          onChange={(event) => choices.setRelease(event.currentTarget.value as Choices["release"])}
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
