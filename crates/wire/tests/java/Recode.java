import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.HexFormat;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.protocol.Readable;

/**
 * Decodes each line of its input, "name version hex" or "name default", with Kafka's own classes
 * and prints it again with what every version of the message makes of it: "version:hash" of the
 * bytes, or "version:!" where Kafka refuses to write it.
 */
public class Recode {
    private static final String[] NAMES = {
        "org.apache.kafka.common.message.%sData",
        "org.apache.kafka.common.message.%s",
        "org.apache.kafka.coordinator.group.generated.%s",
        "org.apache.kafka.coordinator.transaction.generated.%s",
    };

    public static void main(String[] arguments) throws Exception {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] words = line.split(" ", -1);
            Message message = (Message) type(words[0]).getDeclaredConstructor().newInstance();
            if (!words[1].equals("default")) {
                short version = Short.parseShort(words[1]);
                byte[] bytes = HexFormat.of().parseHex(words[2]);
                Readable readable = new ByteBufferAccessor(ByteBuffer.wrap(bytes));
                message.read(readable, version);
                if (readable.remaining() != 0) {
                    throw new IllegalStateException(readable.remaining() + " bytes left: " + line);
                }
                if (!HexFormat.of().formatHex(write(message, version)).equals(words[2])) {
                    throw new IllegalStateException("Kafka writes it otherwise: " + line + "\n" + HexFormat.of().formatHex(write(message, version)));
                }
            }
            System.out.println(line + outcomes(message));
        }
    }

    private static Class<?> type(String name) throws ClassNotFoundException {
        for (String pattern : NAMES) {
            try {
                return Class.forName(String.format(pattern, name));
            } catch (ClassNotFoundException absent) {
                continue;
            }
        }
        throw new ClassNotFoundException(name);
    }

    private static String outcomes(Message message) {
        StringBuilder out = new StringBuilder();
        short last = message.highestSupportedVersion();
        for (short version = message.lowestSupportedVersion(); version <= last; version++) {
            String outcome;
            try {
                outcome = String.format("%016x", hash(write(message, version)));
            } catch (RuntimeException refused) {
                outcome = "!";
            }
            out.append(' ').append(version).append(':').append(outcome);
        }
        return out.toString();
    }

    private static byte[] write(Message message, short version) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer buffer = ByteBuffer.allocate(message.size(cache, version));
        message.write(new ByteBufferAccessor(buffer), cache, version);
        return buffer.array();
    }

    /** FNV-1a. */
    private static long hash(byte[] bytes) {
        long hash = 0xcbf29ce484222325L;
        for (byte one : bytes) {
            hash = (hash ^ (one & 0xff)) * 0x100000001b3L;
        }
        return hash;
    }
}
