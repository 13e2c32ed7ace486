"""Reading rows, one by one, and holding them encoded. The only room that knows Arrow and Pillow."""

from .bare import bare_rows as bare_rows
from .bare import bare_values as bare_values
from .cells import READABLE as READABLE
from .cells import family as family
from .dataset import Dataset as Dataset
from .dataset import Rows as Rows
from .dataset import Store as Store
from .draft import draft_schema as draft_schema
from .images import decode_picture as decode_picture
from .images import shrink_picture as shrink_picture
from .partial import read_partial as read_partial
from .persons import distinct_digests as distinct_digests
from .reading import open_source as open_source
from .reading import read as read
from .texts import number as number
from .write import png_strip as png_strip
from .write import save_images as save_images
from .write import save_rows as save_rows
from .write import save_table as save_table
